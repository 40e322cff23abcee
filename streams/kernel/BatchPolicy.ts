/** When a batch goes out. The batcher does it; this page only decides. */
export interface BatchPolicy {
  readonly maxRecords: number
  /** payload bytes; a single larger record goes alone */
  readonly maxBytes: number
  /** how long a record waits for company at most, from when it was durable; monotonic */
  readonly maxAgeMillis: number
  /**
   * A batch of so few records goes out at this age already: a store with little to do shows them sooner, and a busy one
   * gets larger batches, which cost less a record.
   */
  readonly early?: { readonly ageMillis: number; readonly recordsMax: number }
}

/**
 * Why a batch went out: `count`, `bytes`, `age` by the policy; `demand` because a reader waits for it; `recovery`
 * because a crash left it in flight; `terminate` because the batcher closes.
 */
export const flushCauses = ["count", "bytes", "age", "demand", "recovery", "terminate"] as const
export type FlushCause = (typeof flushCauses)[number]

interface Gathered {
  readonly records: number
  readonly bytes: number
  /** a further record waits in the log, and the byte limit kept it out */
  readonly isCut: boolean
  readonly isRecovering: boolean
  readonly isTerminating: boolean
  readonly isDemanded: boolean
}

/** Fullness comes first, so that the counts tell whether the limits or the readers set the pace. */
export const causeOf = (policy: BatchPolicy, gathered: Gathered): FlushCause => {
  if (gathered.isRecovering) return "recovery"
  if (gathered.records >= policy.maxRecords) return "count"
  if (gathered.bytes >= policy.maxBytes || gathered.isCut) return "bytes"
  if (gathered.isTerminating) return "terminate"
  return gathered.isDemanded ? "demand" : "age"
}

export interface Backoff {
  readonly baseMillis: number
  readonly maxMillis: number
}

/** Pause after the n-th failure in a row: doubling, capped, and jittered by `random` in [0, 1) down to its half. */
export const pauseMillis = (backoff: Backoff, failures: number, random: number): number =>
  Math.ceil(
    Math.min(backoff.maxMillis, backoff.baseMillis * 2 ** Math.min(failures - 1, 30)) * (0.5 + random / 2)
  )
