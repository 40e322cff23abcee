import { request as httpRequest } from "node:http"
import { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { setTimeout as pause } from "node:timers/promises"
import { metered, watched } from "#bench/harness/Meter.ts"
import { type BenchCase, type CaseContext, type Measurement, sized } from "#bench/harness/Suite.ts"
import { asked, type Given, newKey, newProject } from "./Stage.ts"

type Run = BenchCase<Given>["run"]

const mib = 1024 * 1024

/** A megabyte as programs write it. */
const markdown = (): string => {
  const part =
    "## Build 42\n\n- **failed** after `12 s` in [module](https://example.com/m)\n- 3 of 40 tests, see _below_\n\n"
  return part.repeat(Math.ceil(mib / part.length)).slice(0, mib)
}

/** A call with a file in base64 and one of text, `bytes` together, made as it leaves. */
const pour = async ({ url }: Given, key: string, bytes: number): Promise<void> => {
  const base64 = Math.floor((bytes * 0.8) / 4) * 4
  const args = {
    app: "bench",
    message: "files",
    attachments: [
      { filename: "a.bin", content_base64: "BINARY" },
      { filename: "b.txt", text: "TEXT" }
    ]
  }
  const call = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "send_notification", arguments: args }
  }
  const [before = "", between = "", after = ""] = JSON.stringify(call).split(/BINARY|TEXT/)
  const text = bytes - base64 - before.length - between.length - after.length
  const pieces = function* () {
    yield before
    yield* filled(base64)
    yield between
    yield* filled(text)
    yield after
  }
  const headers = { authorization: `Bearer ${key}`, "content-length": bytes }
  const posted = httpRequest(`${url}/mcp`, { method: "POST", headers })
  const answer = new Promise<string>((resolve, reject) => {
    posted.once("error", reject)
    posted.once("response", (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.once("end", () => resolve(`${response.statusCode} ${Buffer.concat(chunks).toString()}`))
    })
  })
  await pipeline(Readable.from(pieces()), posted)
  const said = await answer
  if (!said.startsWith("200") || said.includes("isError")) throw new Error(said.slice(0, 500))
}

const filled = function* (bytes: number) {
  const piece = "Abc0".repeat(16_384)
  for (let left = bytes; left > 0; left -= piece.length)
    yield left < piece.length ? piece.slice(0, left) : piece
}

/** Shows the page over and over until told to stop; answers how often. */
const showing = (address: string) => {
  let isOver = false
  const shown = (async () => {
    for (let pages = 0; ; pages++) {
      if (isOver) return pages
      const answer = await fetch(address)
      const page = await answer.text()
      if (answer.status !== 200 || page.length < mib)
        throw new Error(`${answer.status}, ${page.length} characters`)
    }
  })()
  return {
    end: () => {
      isOver = true
      return shown
    }
  }
}

const measured = async (
  { given }: CaseContext<Given>,
  key: string,
  work: () => Promise<unknown>
): Promise<Measurement> => {
  const { body } = await asked(given, "/messages", {
    key,
    json: { app: "bench", message: "page", body: markdown() }
  })
  const { messages } = body as { readonly messages: ReadonlyArray<{ readonly viewUrl: string }> }
  const address = messages[0]?.viewUrl ?? ""
  // Threads and code.
  const first = showing(address)
  await pause(200)
  await first.end()
  const startedAt = performance.now()
  const { result, use } = await metered(given.pid, () =>
    watched(given.pid, async () => {
      const pages = showing(address)
      const begun = performance.now()
      await work()
      return { pages, workMillis: performance.now() - begun }
    })
  )
  const pages = await result.result.pages.end()
  return {
    work: pages,
    elapsedMillis: performance.now() - startedAt,
    use,
    ...(result.delays === undefined ? {} : { latency: result.delays }),
    figures: {
      "all calls ms": result.result.workMillis,
      ...(result.delays === undefined ? {} : { "longest turn CPU ms": result.delays.longestCpuMillis })
    }
  }
}

/** A megabyte of Markdown is shown over and over, and nothing else is asked. */
export const pagesAlone: Run = async (context) => {
  const key = await newKey(context.given, await newProject(context.given))
  return measured(context, key, () => pause(sized(context, { tiny: 300, quick: 2_000, full: 10_000 })))
}

/** The same while calls of 80 MB are read, one after the other. */
export const pagesAndCalls: Run = async (context) => {
  const { given } = context
  const key = await newKey(given, await newProject(given))
  const bytes = sized(context, { tiny: 4, full: 80 }) * mib
  await pour(given, key, bytes)
  return measured(context, key, async () => {
    for (let left = sized(context, { tiny: 1, quick: 3, full: 20 }); left > 0; left--)
      await pour(given, key, bytes)
  })
}
