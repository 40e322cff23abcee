import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { type Answer, type Asked, TestServer } from "#test/harness/TestServer.ts"

export const live = { excludeTestServices: true, timeout: 60_000 } as const

export const sha256Of = (bytes: string | Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex")

/** A file of a form: its name, its bytes, and its type. */
export type FormFile = readonly [name: string, bytes: string | Uint8Array<ArrayBuffer>, type?: string]

export interface Form {
  readonly files?: ReadonlyArray<FormFile>
  /** other fields; several values come in their order */
  readonly [field: string]: string | ReadonlyArray<string> | ReadonlyArray<FormFile> | undefined
}

/** Fields first, then files. */
export const formOf = ({ files = [], ...fields }: Form): FormData => {
  const form = new FormData()
  for (const [name, values] of Object.entries(fields))
    for (const value of [values ?? []].flat()) form.append(name, String(value))
  for (const [name, bytes, type = ""] of files) form.append("files", new Blob([bytes], { type }), name)
  return form
}

/** The items of an answer. */
export const items = ({ json }: Answer): ReadonlyArray<UploadedFile> =>
  (json as { readonly files?: ReadonlyArray<UploadedFile> } | undefined)?.files ?? []

export const upload = (form: Form, asked: Asked = {}, path = "/api/upload") =>
  Effect.flatMap(TestServer, ({ ask }) => ask("POST", path, { ...asked, body: formOf(form) }))

/** The only item of an upload that has to succeed. */
export const uploaded = (form: Form, asked: Asked = {}, path?: string) =>
  Effect.map(upload(form, asked, path), (answer) => {
    const [item] = items(answer)
    if (item === undefined) throw new Error(`${answer.status} ${JSON.stringify(answer.json)}`)
    return item
  })
