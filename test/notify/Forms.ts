import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { api, type SentBody } from "./Stage.ts"

export type Field = readonly [name: string, value: string | Blob, filename?: string]

/** Sends a form of these parts, in this order. */
export const sendForm = (
  key: string,
  parts: ReadonlyArray<Field>,
  headers: Readonly<Record<string, string>> = {}
) =>
  Effect.flatMap(TestServer, ({ ask }) => {
    const body = new FormData()
    for (const [name, value, filename] of parts)
      if (typeof value === "string") body.append(name, value)
      else body.append(name, value, filename)
    return ask("POST", `${api}/messages`, { key, headers, body })
  })

export const base: ReadonlyArray<Field> = [
  ["app", "backup.sh"],
  ["message", "done"]
]
export const file = (text: string, name = "a.log", part = "file"): Field => [part, new Blob([text]), name]

/** A form as bytes, for what `FormData` cannot make. */
const boundary = "xXxBOUNDARYxXx"
export const part = (head: string, text: string | Uint8Array): Buffer =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
    Buffer.from(text),
    Buffer.from("\r\n")
  ])
export const end = Buffer.from(`--${boundary}--\r\n`)
export const baseParts = [part('name="app"', "a"), part('name="message"', "m")]

export const sendBytes = (
  key: string,
  bytes: Uint8Array,
  type = `multipart/form-data; boundary=${boundary}`
) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    ask("POST", `${api}/messages`, { key, body: Uint8Array.from(bytes), headers: { "content-type": type } })
  )
export const sendParts = (key: string, parts: ReadonlyArray<Buffer>) =>
  sendBytes(key, Buffer.concat([...baseParts, ...parts, end]))

export const messagesOf = ({ json }: { readonly json: unknown }) => (json as SentBody).messages
