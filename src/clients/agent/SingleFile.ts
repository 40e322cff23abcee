import { isMainThread } from "node:worker_threads"

/** The entry of `npm run build:agent`: all of the client is one file, which is started again for each search. */
if (isMainThread) await import("./main.ts")
else await import("./tools/SearchThread.ts")
