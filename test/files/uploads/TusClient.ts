import { assert } from "@effect/vitest"
import { type Answer, ask, type Asked, type Reachable } from "#test/harness/ApiClient.ts"

export const metadataOf = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString("base64")}`)
    .join(",")

export const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(text))

/** Requests of the tus protocol by a key. */
export class TusClient {
  private readonly server: Reachable
  private readonly key: string

  constructor(server: Reachable, key: string) {
    this.server = server
    this.key = key
  }

  ask(method: string, path: string, headers: Asked["headers"] = {}, body?: string): Promise<Answer> {
    return ask(this.server, method, path, {
      key: this.key,
      headers: { "tus-resumable": "1.0.0", ...headers },
      ...(body === undefined ? {} : { body: bytesOf(body) })
    })
  }

  post(headers: Asked["headers"], body?: string): Promise<Answer> {
    return this.ask("POST", "/api/uploads", headers, body)
  }

  /** Begins an upload, and answers its path. */
  async begin(length: number, fields: Readonly<Record<string, string>>, more: Asked["headers"] = {}): Promise<string> {
    const headers = { "upload-length": String(length), "upload-metadata": metadataOf(fields), ...more }
    const answer = await this.post(headers)
    assert.strictEqual(answer.status, 201, JSON.stringify(answer.body))
    return answer.headers.get("location") ?? ""
  }

  patch(path: string, offset: number, body: string, headers: Asked["headers"] = {}): Promise<Answer> {
    const own = { "upload-offset": String(offset), "content-type": "application/offset+octet-stream" }
    return this.ask("PATCH", path, { ...own, ...headers }, body)
  }

  head(path: string): Promise<Answer> {
    return this.ask("HEAD", path)
  }
}
