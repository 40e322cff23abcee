import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { readSend, type SendFields, type SendJson } from "./SendFields.ts"

/** The fields of a send that a form may have; it is open to others, which are ignored. */
const names = ["app", "message", "title", "url", "body", "bodyFormat", "priority"] as const
/** Those that come as often as needed, or as one JSON array. */
const lists = ["project", "attachments"] as const

const isNamed = <Name extends string>(known: ReadonlyArray<Name>, name: string): name is Name =>
  known.some((one) => one === name)

/** Gathers the fields of a form that sends. Source: contract/notify#forms. */
export class SendForm {
  readonly #fields = new Map<string, unknown>()
  readonly #lists = new Map<string, Array<unknown>>()
  #bodyJson: Uint8Array<ArrayBuffer> | undefined
  #fault: FieldFault | undefined

  static takes(name: string): boolean {
    return isNamed(names, name) || isNamed(lists, name)
  }

  /** ids of uploads so far */
  get ids(): number {
    return this.#lists.get("attachments")?.length ?? 0
  }

  /** @param isJson its part says so, which counts for a body */
  add(name: string, bytes: Uint8Array<ArrayBuffer>, isJson: boolean): void {
    if (!isUtf8(bytes)) return this.#fail(name, "expected UTF-8")
    if (isNamed(lists, name)) {
      const list = this.#lists.get(name) ?? []
      list.push(...itemsOf(Buffer.from(bytes).toString()))
      this.#lists.set(name, list)
    } else if (this.#fields.has(name)) this.#fail(name, "given twice")
    else if (name === "body" && isJson) {
      this.#bodyJson = bytes
      this.#fields.set(name, undefined)
    } else this.#fields.set(name, Buffer.from(bytes).toString())
  }

  /** The first fault, or what is left to be read: a body of JSON may be long. */
  get read(): Result.Result<SendFields, FieldFault> | SendJson {
    if (this.#fault !== undefined) return Result.fail(this.#fault)
    const fields = Object.fromEntries([...this.#fields, ...this.#lists])
    return this.#bodyJson === undefined ? readSend(fields) : { bytes: this.#bodyJson, around: fields }
  }

  #fail(field: string, text: string): void {
    this.#fault ??= { field, text }
  }
}

const itemsOf = (text: string): ReadonlyArray<unknown> => {
  if (!text.trimStart().startsWith("[")) return [text]
  try {
    const json: unknown = JSON.parse(text)
    return Array.isArray(json) ? json : [text]
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return [text]
  }
}
