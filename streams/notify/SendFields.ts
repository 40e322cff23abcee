import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import type { FieldFault } from "#schemas/core/FieldFault.ts"
import { jsonFaultOf } from "#schemas/core/JsonFitness.ts"
import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import type { BodyFormat } from "#schemas/notify/Message.ts"
import { attachmentsMax, bodyFormats, priorities } from "#schemas/notify/SendTerms.ts"

/** A message that is to be sent, whichever way it came. Source: contract/notify#sending. */
export interface SendFields {
  readonly app: string
  readonly message: string
  readonly title: string | null
  /** http or https */
  readonly url: string | null
  /** ids or slugs as they were given; null: all that the key covers */
  readonly project: ReadonlyArray<string> | null
  /** text, or objects and arrays as compact JSON */
  readonly body: string | null
  readonly bodyFormat: BodyFormat
  readonly priority: (typeof priorities)[number]
  /** ids of uploads, each once */
  readonly attachments: ReadonlyArray<string>
}

const bodyBytesMax = 1_048_576
const projectsMax = 100
const urlLengthMax = 2_048

/** Thrown within this file alone. */
class Fault extends Error {
  readonly field: string
  readonly text: string
  constructor(field: string, text: string) {
    super(text)
    this.field = field
    this.text = text
  }
}

/**
 * Reads the fields of a send: JSON that was parsed, the fields of a form, the arguments of a tool. Unknown ones are
 * ignored, null is absent. A fault is the first one, in the order of the fields; an error says it as `field: text`.
 */
export const readSend = (value: unknown): Result.Result<SendFields, FieldFault> => {
  try {
    return Result.succeed(fieldsOf(value))
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return Result.fail({ field: error.field, text: error.text })
  }
}

/** Bytes of JSON: the fields of a send, or, where others came beside it, its `body`. */
export interface SendJson {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly around: FormFields | undefined
}

/** The fields of a form, by name. */
export type FormFields = Readonly<Record<string, unknown>>

/** The depth counts the fields of a send from within: a `body` of the greatest depth has an object around it. */
const sendDepthMax = jsonDepthMax + 1

/** As `readSend`, of bytes. */
export const readSendJson = ({ around, bytes }: SendJson): Result.Result<SendFields, FieldFault> => {
  if (depthOf(bytes) > (around === undefined ? sendDepthMax : jsonDepthMax))
    return bodyFault(`nested deeper than ${jsonDepthMax}`)
  if (!isUtf8(bytes)) return bodyFault("expected UTF-8")
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder().decode(bytes))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return bodyFault(around === undefined ? "expected a valid JSON body" : "expected JSON, as its part says")
  }
  return readSend(around === undefined ? json : { ...around, body: json })
}

const bodyFault = (text: string) => Result.fail({ field: "body", text })

const fieldsOf = (value: unknown): SendFields => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Fault("body", "expected object")
  const given = (name: keyof SendFields): unknown =>
    Object.hasOwn(value, name) ? (Reflect.get(value, name) ?? undefined) : undefined
  return {
    app: lineOf("app", required("app", given("app")), 100),
    message: messageOf(required("message", given("message"))),
    title: titleOf(given("title")),
    url: urlOf(given("url")),
    body: bodyOf(given("body")),
    bodyFormat: oneOf("bodyFormat", given("bodyFormat") ?? "auto", bodyFormats),
    priority: oneOf("priority", given("priority") ?? "normal", priorities),
    project: projectOf(given("project")),
    attachments: attachmentsOf(given("attachments"))
  }
}

const required = (field: string, value: unknown): unknown => {
  if (value === undefined) throw new Fault(field, "is required")
  return value
}

const textOf = (field: string, value: unknown, lengthMax: number): string => {
  const expected = `expected text of 1 to ${lengthMax} characters`
  if (typeof value !== "string" || value.length === 0 || value.length > lengthMax)
    throw new Fault(field, expected)
  return fit(field, value)
}

// oxlint-disable-next-line no-control-regex
const control = /[\u0000-\u001f\u007f-\u009f]/u

const lineOf = (field: string, value: unknown, lengthMax: number): string => {
  const text = textOf(field, value, lengthMax)
  if (control.test(text)) throw new Fault(field, `expected text of 1 to ${lengthMax} characters`)
  return text
}

/** A value that no store can keep: NUL, half of a surrogate pair, a number beyond a double. */
const fit = <A>(field: string, value: A): A => {
  const fault = jsonFaultOf(value, { isNulRefused: true })
  if (fault === undefined) return value
  if (fault.text.startsWith("nested")) throw new Fault(field, `nested deeper than ${jsonDepthMax}`)
  throw new Fault(
    fault.field === "" ? field : `${field}${fault.field.startsWith("[") ? "" : "."}${fault.field}`,
    fault.text
  )
}

// oxlint-disable-next-line no-control-regex
const dropped = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/gu

/** Control characters but tab and newline are dropped before anything is counted. */
const messageOf = (value: unknown): string =>
  textOf("message", typeof value === "string" ? value.replace(dropped, "") : value, 4_000)

const titleOf = (value: unknown): string | null =>
  value === undefined || value === "" ? null : lineOf("title", value, 200)

const urlOf = (value: unknown): string | null => {
  if (value === undefined) return null
  const isAddress =
    typeof value === "string" &&
    value.length <= urlLengthMax &&
    value.isWellFormed() &&
    !/[\s\p{Cc}]/u.test(value) &&
    /^https?:$/.test(URL.parse(value)?.protocol ?? "")
  if (!isAddress)
    throw new Fault("url", `expected an http or https address of at most ${urlLengthMax} characters`)
  return value
}

const bodyOf = (value: unknown): string | null => {
  if (value === undefined || value === "") return null
  if (typeof value !== "string" && typeof value !== "object")
    throw new Fault("body", "expected text, an object or an array")
  // A string is measured before it is searched, an object after: its depth comes before `JSON.stringify`.
  if (typeof value === "string" && value.length > bodyBytesMax) throw tooLong()
  fit("body", value)
  const text = typeof value === "string" ? value : JSON.stringify(value)
  if (Buffer.byteLength(text) > bodyBytesMax) throw tooLong()
  return text
}

const tooLong = () => new Fault("body", `at most ${bodyBytesMax} bytes`)

const oneOf = <const A extends string>(field: string, value: unknown, known: ReadonlyArray<A>): A => {
  const found = known.find((name) => name === value)
  if (found === undefined)
    throw new Fault(field, `expected ${known.map((name) => JSON.stringify(name)).join(" | ")}`)
  return found
}

const projectOf = (value: unknown): ReadonlyArray<string> | null => {
  if (value === undefined) return null
  const list: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
  const isList =
    list.length >= 1 && list.length <= projectsMax && list.every((ref) => typeof ref === "string")
  if (!isList)
    throw new Fault("project", `expected an id or a slug, or a list of 1 to ${projectsMax} of them`)
  return fit("project", list as ReadonlyArray<string>)
}

const attachmentsOf = (value: unknown): ReadonlyArray<string> => {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new Fault("attachments", "expected a list of ids")
  if (value.length > attachmentsMax) throw new Fault("attachments", `at most ${attachmentsMax}`)
  const seen = new Set<unknown>()
  for (const [index, id] of value.entries()) {
    if (typeof id !== "string") throw new Fault(`attachments[${index}]`, "expected text")
    if (seen.has(id)) throw new Fault(`attachments[${index}]`, "given twice")
    seen.add(id)
  }
  return fit("attachments", value)
}
