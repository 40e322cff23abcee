import type { Refused } from "../api/Refused.ts"
import { tryNow } from "../api/WhenVisible.ts"

/** The trouble that the page waits for, shown once for all of its parts. */
export const TroubleNote = ({ troubles }: { readonly troubles: ReadonlyMap<string, Refused> }) => {
  const [trouble] = [...troubles.values()].sort((a, b) => urgency(b) - urgency(a))
  return (
    <div role="status" class="trouble-place">
      {trouble !== undefined && (
        <p class="trouble">
          {wordsFor(trouble)}{" "}
          <button type="button" class="plain" onClick={tryNow}>
            Try again now
          </button>
        </p>
      )}
    </div>
  )
}

/** Trouble that does not pass by itself comes first. */
const urgency = ({ retryMillis }: Refused): number => (retryMillis === undefined ? 1 : 0)

const wordsFor = ({ message, retryMillis, status }: Refused): string => {
  if (retryMillis === undefined) return `${message}.`
  const seconds = Math.ceil(retryMillis / 1000)
  const problem = status === 429 ? "Too many requests at once" : message
  return `${problem}. Trying again every ${seconds === 1 ? "second" : `${seconds} seconds`}; what is shown may be older.`
}
