import { Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { bodyOf } from "#schemas/core/Problem.ts"
import * as CallFault from "./CallFault.ts"

/** Formats that clients of this base address may try, and that it does not support. Source: contract/llm#endpoints. */
const laterPaths = ["/api/v1/responses", "/api/v1/messages"] as const

const answer = (path: string) => {
  const fault = CallFault.unknownFormat(path)
  return HttpServerResponse.text(bodyOf(fault, "openai"), {
    status: fault.status,
    contentType: "application/json"
  })
}

/** 404 in the form of errors that those clients read. */
export const layer = Layer.mergeAll(
  HttpRouter.add("*", laterPaths[0], answer(laterPaths[0])),
  HttpRouter.add("*", laterPaths[1], answer(laterPaths[1]))
)
