/** The options that the parent hands to the child that runs the engine, as JSON in `optionsVariable`. */
export interface ChildOptions {
  /** where the engine keeps its tables */
  readonly engineDirectory: string
  /** where the data of inserts lies while it is read; emptied at every start */
  readonly incomingDirectory: string
  /** 0, or one already taken: a free one is picked and reported */
  readonly port: number
  readonly username: string
  readonly password: string
  /** created when missing; the one that requests mean when they name none */
  readonly database: string
  readonly queryBytes: number
  readonly serverBytes: number
  readonly resultBytes: number
  readonly bodyBytes: number
  readonly queryMillis: number
  readonly waiting: number
  readonly stopMillis: number
  /** a process that is younger does not end for damage that it finds */
  readonly mendMillis: number
}

export const optionsVariable = "SIGNALBOX_CLICKHOUSE_CHILD"

/** Child to parent, once: it listens and its engine answers. */
export interface ChildReady {
  readonly port: number
}
