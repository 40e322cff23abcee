import { Schema } from "effect"
import { queue } from "#src/infra/jobs/Job.ts"

/** A job a recipient, of the delivery's id, in a lane of that id; one more in that lane where a failed one is tried anew. How long it is tried is a matter of time, not of attempts. */
export const mailDeliveries = queue("mail", Schema.Struct({ message: Schema.String, owner: Schema.String }), {
  attemptsMax: Infinity
})
