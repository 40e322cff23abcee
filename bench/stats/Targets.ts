/** A running server with the site's traffic, as the processes of cases reach it. */
export interface Target {
  readonly url: string
  readonly key: string
  readonly site: string
  readonly pid: number
  /** its ClickHouse, past all of the server's code */
  readonly clickhouseUrl: string
  readonly storePid: number
}

/** The targets of every case. */
export interface Targets {
  /** every month is one part */
  readonly merged: Target
  /** the same events, the last 24 hours in 30 parts; the same server where sizes are tiny */
  readonly apart: Target
  /** of a site of the merged server that has no events: the cost of a query before anything is read */
  readonly emptySite: string
  readonly events: number
  readonly fillMillis: number
}
