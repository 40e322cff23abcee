import { createHash } from "node:crypto"
import { assert } from "@effect/vitest"
import { type Answer, ask, type Asked, type Reachable } from "#test/harness/ApiClient.ts"

export const metadataOf = (fields: Readonly<Record<string, string>>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString("base64")}`)
    .join(",")

export const digestOf = (algorithm: string, text: string): string =>
  createHash(algorithm).update(text).digest("base64")

type Headers = NonNullable<Asked["headers"]>

/** The values of headers of an answer; null where one is absent. */
export const told = ({ headers }: Answer, ...names: ReadonlyArray<string>): ReadonlyArray<string | null> =>
  names.map((name) => headers.get(name))

/** The text of an error. */
export const errorOf = ({ body }: Answer): string =>
  String((body as { readonly error?: string } | undefined)?.error)

/** Requests of the tus protocol by a key. */
export class TusClient {
  private readonly server: Reachable
  readonly key: string

  constructor(server: Reachable, key: string) {
    this.server = server
    this.key = key
  }

  ask(method: string, path: string, headers: Headers = {}, body?: string): Promise<Answer> {
    return ask(this.server, method, path, {
      key: this.key,
      headers: { "tus-resumable": "1.0.0", ...headers },
      ...(body === undefined ? {} : { body: new Uint8Array(Buffer.from(body)) })
    })
  }

  post(headers: Headers, body?: string): Promise<Answer> {
    const type = body === undefined ? {} : { "content-type": "application/offset+octet-stream" }
    return this.ask("POST", "/api/uploads", { ...type, ...headers }, body)
  }

  /** Begins an upload, and answers its path. */
  async begin(length: number, fields: Readonly<Record<string, string>>, more: Headers = {}): Promise<string> {
    const metadata = Object.keys(fields).length === 0 ? {} : { "upload-metadata": metadataOf(fields) }
    const answer = await this.post({ "upload-length": String(length), ...metadata, ...more })
    assert.strictEqual(answer.status, 201, errorOf(answer))
    return answer.headers.get("location") ?? ""
  }

  patch(path: string, offset: number, body: string, headers: Headers = {}): Promise<Answer> {
    const own = { "upload-offset": String(offset), "content-type": "application/offset+octet-stream" }
    return this.ask("PATCH", path, { ...own, ...headers }, body)
  }

  head(path: string): Promise<Answer> {
    return this.ask("HEAD", path)
  }

  /** Uploads a whole file in one piece, and answers the answer to its last request. */
  async whole(text: string, fields: Readonly<Record<string, string>>): Promise<Answer> {
    return this.patch(await this.begin(Buffer.byteLength(text), fields), 0, text)
  }

  /** The text of a stored file. */
  async read(fileId: string | null): Promise<string> {
    const headers = { authorization: `Bearer ${this.key}` }
    const response = await fetch(`${this.server.url}/api/files/${fileId}`, { headers })
    assert.strictEqual(response.status, 200)
    return response.text()
  }
}
