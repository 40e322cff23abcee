import { Schema } from "effect"
import { queue } from "#src/infra/jobs/Job.ts"

/**
 * A job a delivery, of its id, in a lane a channel. How long it is tried is a matter of time, not of attempts.
 * `deliveries_fan_out` (0020_Notify.ts) offers them.
 */
export const deliveries = queue(
  "deliveries",
  Schema.Struct({ message: Schema.String, owner: Schema.String }),
  { attemptsMax: Infinity, isKept: true }
)
