import { useAnswer } from "../api/UseAnswer.ts"
import { formatBytes } from "./Words.ts"

/** Bytes of the user, as the API answers them. Versions and the trash count. */
interface Used {
  readonly usedBytes: number
  readonly trashBytes: number
  readonly quotaBytes: number | null
}

const refreshMillis = 30_000

/** The share of a quota from which the meter warns. */
const nearlyFull = 0.9

/** How much of the quota is used, or how much there is at all. */
export const Usage = ({ since }: { readonly since: number }) => {
  const { data } = useAnswer<Used>("/api/storage", refreshMillis, { since })
  if (data === undefined) return null
  const { quotaBytes, trashBytes, usedBytes } = data
  const trash = trashBytes > 0 ? `, ${formatBytes(trashBytes)} of it in the trash` : ""
  if (quotaBytes === null)
    return (
      <p class="hint usage">
        {formatBytes(usedBytes)} used{trash}
      </p>
    )
  return (
    <div class="usage">
      <meter
        aria-label="Quota used"
        min={0}
        max={Math.max(quotaBytes, 1)}
        high={quotaBytes * nearlyFull}
        value={Math.min(usedBytes, quotaBytes)}
      />
      <p class="hint">
        {formatBytes(usedBytes)} of {formatBytes(quotaBytes)} used{trash}.
        {usedBytes >= quotaBytes && " The quota is reached: empty the trash or delete old versions."}
      </p>
    </div>
  )
}
