import { isUtf8 } from "node:buffer"
import { type JsonBounds, jsonExcess } from "#schemas/core/JsonBounds.ts"
import { jsonFaultOf, mayBeUnfit } from "#schemas/core/JsonFitness.ts"

/** An invalid field of a request body. Source: contract/http#errors. */
export class RequestFault {
  /** path of the field: `messages[2].content`; "" for the body itself */
  readonly param: string
  readonly problem: string
  readonly code: "invalid_value" | "context_length_exceeded" | null

  constructor(param: string, problem: string, code: RequestFault["code"] = "invalid_value") {
    this.param = param
    this.problem = problem
    this.code = code
  }
}

/** A body of more members, values or depth than it may have. */
export class TooMuchJson extends RequestFault {}

/** A long conversation with a thousand tools has some 50,000 members, a list of token ids 300,000 values. */
const requestBounds: JsonBounds = { members: 100_000, values: 1_000_000 }

/** A body as JSON, within the limits that hold for every JSON body here. */
export const readJson = (bytes: Buffer, bounds: JsonBounds = requestBounds): unknown => {
  const excess = jsonExcess(bytes, bounds)
  if (excess !== undefined) return new TooMuchJson("", excess, null)
  if (!isUtf8(bytes)) return new RequestFault("", "the body is not UTF-8", null)
  try {
    const text = bytes.toString("utf8")
    const json: unknown = JSON.parse(text)
    const fault = mayBeUnfit(text) ? jsonFaultOf(json, { isNulRefused: false }) : undefined
    return fault === undefined ? json : new RequestFault(fault.field, fault.text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return new RequestFault("", `the body is no JSON: ${error.message}`, null)
  }
}
