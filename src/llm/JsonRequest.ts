import { depthOf, jsonDepthMax } from "#schemas/core/JsonDepth.ts"
import { RequestFault } from "./RequestFault.ts"

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** A body as JSON, within the limits that hold for every JSON body here. */
export const readJson = (bytes: Uint8Array): unknown => {
  if (depthOf(bytes) > jsonDepthMax) return new RequestFault("", `nested deeper than ${jsonDepthMax}`, null)
  try {
    return JSON.parse(utf8.decode(bytes))
  } catch (error) {
    const problem = error instanceof SyntaxError ? error.message : "not UTF-8"
    return new RequestFault("", `the body is no JSON: ${problem}`, null)
  }
}
