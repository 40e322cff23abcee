import { createHash, randomBytes } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as tus from "tus-js-client"
import { beforeAll } from "vitest"
import { type Reachable } from "#test/harness/ApiClient.ts"
import { sharedServer } from "#test/harness/TestServer.ts"
import { makeCaller } from "#test/llm/Caller.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { startCutProxy } from "./CutProxy.ts"

/** `UPLOAD_BYTES=1073741824` for a large one by hand, `SIMULATION_SEED` repeats its cuts. */
const bytes = Number(process.env["UPLOAD_BYTES"] ?? 8 * 1024 * 1024)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)

let server: Reachable
let key: string

beforeAll(async () => {
  server = (await sharedServer()).server
  key = (await makeCaller(server, 0)).key
})

/** Uploads by tus-js-client, and answers the id of the version that the last answer tells. */
const upload = (
  content: Buffer,
  url: string,
  options: Partial<tus.UploadOptions>
): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const made = new tus.Upload(content, {
      endpoint: `${url}/api/uploads`,
      headers: { authorization: `Bearer ${key}` },
      metadata: { filename: "by a client.bin", filetype: "application/octet-stream" },
      retryDelays: Array.from({ length: 100 }, () => 10),
      onError: reject,
      onSuccess: ({ lastResponse }) => resolve(lastResponse.getHeader("Upload-File-Id")),
      ...options
    })
    made.start()
  })

const sha256 = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex")

const storedHash = async (fileId: string | undefined): Promise<string> => {
  const response = await fetch(`${server.url}/api/files/${fileId}`, {
    headers: { authorization: `Bearer ${key}` }
  })
  const hash = createHash("sha256")
  for await (const piece of response.body ?? []) hash.update(piece)
  return hash.digest("hex")
}

describe("tus-js-client", () => {
  it("uploads in one request, in several, with the bytes in the first, with the length at the end", async () => {
    const content = randomBytes(300_000)
    for (const options of [
      {},
      { chunkSize: 70_000 },
      { uploadDataDuringCreation: true },
      { uploadDataDuringCreation: true, chunkSize: 70_000 },
      { overridePatchMethod: true, chunkSize: 200_000 },
      { uploadLengthDeferred: true, chunkSize: 100_000 }
    ]) {
      const fileId = await upload(content, server.url, options)
      assert.strictEqual(await storedHash(fileId), sha256(content), JSON.stringify(options))
    }
  })

  it("uploads parts side by side, which are joined", async () => {
    const content = randomBytes(1_000_000)
    const fileId = await upload(content, server.url, { parallelUploads: 4 })
    assert.strictEqual(await storedHash(fileId), sha256(content))
  })

  it(`gets ${bytes} bytes through a proxy that cuts every connection, and sends nothing twice but what was in flight`, async () => {
    const random = new SeededRandom(seed)
    const message = `SIMULATION_SEED=${seed} UPLOAD_BYTES=${bytes}`
    const content = randomBytes(bytes)
    const proxy = await startCutProxy(server.url, () => 1 + random.below(bytes / 8))
    try {
      const fileId = await upload(content, proxy.url, {})
      assert.strictEqual(await storedHash(fileId), sha256(content), message)
      assert.isAbove(proxy.cuts(), 3, message)
      // Heads of requests are all that comes on top.
      assert.isBelow(proxy.forwarded() - bytes, 4_096 * proxy.connections(), message)
    } finally {
      await proxy.close()
    }
  })
})
