import type { SinkUnavailable } from "#streams/kernel/Sink.ts"
import type { ClickHouseUnavailable } from "#src/infra/clickhouse/ClickHouseFailed.ts"

/** The code at the end of a message, in brackets: ClickHouse's code and name, an SQLSTATE, `disk_full`. The rest may quote records. */
const codeOf = (problem: string): string => {
  const [, code] = /\((\w{2,20}(?: [A-Z_]{1,60})?)\)$/.exec(problem) ?? []
  return code === undefined ? "" : ` (${code})`
}

/** Why a consumer of a log stands still, for `/readyz`, which is public: the server's log has the whole cause. */
export const troubleWords = ({ problem, reason }: SinkUnavailable): string => {
  if (reason === "refuses") return `the store answers, and refuses what it is given${codeOf(problem)}`
  return reason === "behind" ? "the store is behind" : `the store is away or takes nothing${codeOf(problem)}`
}

/** The text for a reader who cannot be answered now. `store` begins the sentence. */
export const troubleText = (store: string, error: SinkUnavailable | ClickHouseUnavailable): string => {
  if (error._tag === "ClickHouseUnavailable") {
    return error.code === undefined
      ? `${store} is away; nothing is lost, try again later`
      : `${store} cannot answer this now${codeOf(error.problem)}; nothing is lost, try again later`
  }
  switch (error.reason) {
    case "refuses":
      return `${store} refuses what it is given${codeOf(error.problem)}; nothing is lost, and whoever runs the server is told`
    case "behind":
      return `${store} is behind by more than it takes in a few seconds; nothing is lost, try again in a moment`
    default:
      return `${store} is away; nothing is lost, try again later`
  }
}
