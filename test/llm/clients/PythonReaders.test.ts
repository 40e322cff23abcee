import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import { pythonClients, pythonHome } from "#test/harness/PythonClients.ts"
import { describeWith } from "#test/harness/Requirement.ts"
import {
  assertHearsCall,
  assertHearsError,
  assertHearsText,
  type Heard,
  recorded,
  type RecordedServer,
  startRecordedServer,
  type StreamReader
} from "./RecordedServer.ts"

const run = promisify(execFile)

interface PythonClient {
  readonly name: string
  /** the reader of readStreams.py */
  readonly reader: string
  readonly tells: StreamReader["tells"]
  /** where a version of the package is that goes before the environment's */
  readonly path: string
}

const kinds: ReadonlyArray<PythonClient> = [
  { name: "openai 2 in Python", reader: "openai", tells: ["id", "usage", "cost"], path: "" },
  {
    name: "openai 3 in Python",
    reader: "openai",
    tells: ["id", "usage", "cost"],
    path: join(pythonHome, "openai-3")
  },
  { name: "LiteLLM's openrouter/", reader: "litellm", tells: ["id"], path: "" },
  {
    name: "LiteLLM's openrouter/ with include_usage",
    reader: "litellm_with_usage",
    tells: ["id", "usage", "cost"],
    path: ""
  },
  { name: "LangChain", reader: "langchain", tells: ["usage"], path: "" },
  { name: "LangChain with stream_usage", reader: "langchain_with_usage", tells: ["usage"], path: "" }
]

const models: ReadonlyArray<string> = Object.values(recorded)

describeWith(pythonClients, "a stream read in Python by clients that are not modified", () => {
  let running: RecordedServer
  beforeAll(async () => {
    running = await startRecordedServer()
  })
  afterAll(() => running.dispose())

  const readAll = async ({ path, reader }: PythonClient): Promise<ReadonlyArray<Heard>> => {
    const script = join(import.meta.dirname, "readStreams.py")
    const env = {
      ...process.env,
      PYTHONPATH: path,
      PYTHONDONTWRITEBYTECODE: "1",
      // It would ask the network for prices.
      LITELLM_LOCAL_MODEL_COST_MAP: "True"
    }
    const args = [script, reader, running.baseURL, running.caller.key, ...models]
    const { stdout } = await run(join(pythonHome, "bin/python"), args, { env })
    // LiteLLM prints advice for people.
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "")
  }

  it.each(kinds)("$name", async (kind) => {
    const heard = await readAll(kind)
    const of = (model: string): Heard => heard[models.indexOf(model)] ?? assert.fail(JSON.stringify(heard))
    const reader = { ...kind, read: async (model: string) => of(model) }
    assertHearsText(of(recorded.says), reader)
    assertHearsCall(of(recorded.calls), reader)
    assertHearsError(of(recorded.breaks), reader)
  })
})
