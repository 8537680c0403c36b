"""Tests of what is on the screen: a real JupyterLab in headless Chromium. A package, so that its server and browser end with its last test."""
