/** A field of a request body that cannot be taken. Source: contract/http#errors. */
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
