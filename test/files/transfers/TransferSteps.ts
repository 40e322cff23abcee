import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { RawClient } from "#test/front/RawClient.ts"
import { type Answer, type Asked, TestServer } from "#test/harness/TestServer.ts"

export const live = { excludeTestServices: true } as const

export const sha256Of = (bytes: string | Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex")

/** A file of a form: its name, its bytes, and its type. */
type FormFile = readonly [name: string, bytes: string | Uint8Array<ArrayBuffer>, type?: string]

/** Other fields; several values come in their order. */
type Fields = Readonly<Record<string, string | ReadonlyArray<string>>>

/** Fields first, then files. */
export const formOf = (files: ReadonlyArray<FormFile>, fields: Fields = {}): FormData => {
  const form = new FormData()
  for (const [name, values] of Object.entries(fields))
    for (const value of [values].flat()) form.append(name, value)
  for (const [name, bytes, type = ""] of files) form.append("files", new Blob([bytes], { type }), name)
  return form
}

/** The items of an answer. */
export const items = ({ json }: Answer): ReadonlyArray<UploadedFile> =>
  (json as { readonly files?: ReadonlyArray<UploadedFile> } | undefined)?.files ?? []

export const upload = (files: ReadonlyArray<FormFile>, fields: Fields = {}, asked: Asked = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", "/api/upload", { ...asked, body: formOf(files, fields) })
  )

/** The items of an upload that has to succeed. */
export const uploadedAll = (files: ReadonlyArray<FormFile>, fields: Fields = {}, asked: Asked = {}) =>
  Effect.map(upload(files, fields, asked), (answer) => {
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
    return items(answer)
  })

/** The same for one. */
export const uploaded = (file: FormFile, fields: Fields = {}, asked: Asked = {}) =>
  Effect.map(uploadedAll([file], fields, asked), ([item]) => {
    if (item === undefined) throw new Error("no file in the answer")
    return item
  })

/** The status and the error of an answer. */
export const told = ({ json, status }: Answer): readonly [number, unknown] => [
  status,
  (json as { readonly error?: unknown } | undefined)?.error
]

export const get = (id: string, key: string, headers: Readonly<Record<string, string>> = {}, query = "") =>
  Effect.flatMap(TestServer, ({ ask }) => ask("GET", `/api/files/${id}${query}`, { key, headers }))

export const textIn = ({ bytes }: Answer): string => Buffer.from(bytes).toString()

/** The value of a series of shared files on `/metrics`; 0 where there is none. */
export const series = (name: string, labels: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(ask("GET", "/metrics", { key: "" }), ({ bytes }) => {
      const line = Buffer.from(bytes)
        .toString()
        .split("\n")
        .find(
          (one) =>
            one.startsWith(`signalbox_files_${name}`) &&
            Object.entries(labels).every(([label, value]) => one.includes(`${label}="${value}"`))
        )
      return line === undefined ? 0 : Number(line.split(" ").at(-1))
    })
  )

/** A connection that has sent the head of a request, as it is. */
export const begun = (key: string, line: string, headers: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { port } = yield* TestServer
    const client = yield* Effect.acquireRelease(
      Effect.promise(() => RawClient.open(port)),
      (opened) => Effect.sync(() => opened.destroy())
    )
    const head = [`${line} HTTP/1.1`, "Host: a", `Authorization: Bearer ${key}`, ...headers, "", ""]
    yield* Effect.promise(() => client.send(head.join("\r\n")))
    return client
  })

/** The answer to a request without a body whose path goes out as it is. */
export const rawAnswer = (key: string, line: string, body = "", headers: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const client = yield* begun(key, line, [
      ...headers,
      "Connection: close",
      `Content-Length: ${body.length}`
    ])
    yield* Effect.promise(() => client.send(body))
    return yield* Effect.promise(() => client.closed())
  }).pipe(Effect.scoped)
