import { Layer } from "effect"
import { Purges } from "#src/analytics/purges/Purges.ts"
import { Jobs } from "#src/infra/jobs/Jobs.ts"
import { Notices } from "#src/infra/notices/Notices.ts"

/** Purges are offered, and nobody works on them. */
export const offeredPurges = Purges.layer.pipe(Layer.provide(Jobs.layer), Layer.provide(Notices.layer))
