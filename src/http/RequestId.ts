import { Context } from "effect"
import { newId } from "#src/infra/crypto/Tokens.ts"

/** The id of the request that is being served, as its answer's `X-Request-Id` and its log lines carry it. */
export const RequestId = Context.Reference<string>("signalbox/infra/RequestId", { defaultValue: () => "" })

/** The form of a caller's request id: a plain token, so that it can stand in a header and a log line as it is. */
const acceptable = /^[0-9A-Za-z._:-]{1,128}$/

/** The caller's `X-Request-Id` if it is acceptable, else a fresh one. */
export const requestIdOf = (header: string | undefined): string =>
  header !== undefined && acceptable.test(header) ? header : newId("req")
