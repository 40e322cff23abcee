import { useCallback, useState } from "preact/hooks"
import type { Refused } from "./Refused.ts"

/** Troubles that parts of the page wait for, by part. */
export const useTroubles = () => {
  const [troubles, setTroubles] = useState<ReadonlyMap<string, Refused>>(new Map())
  const report = useCallback((part: string, trouble: Refused | undefined): void => {
    setTroubles((before) => {
      if (before.get(part) === trouble) return before
      const after = new Map(before)
      if (trouble === undefined) after.delete(part)
      else after.set(part, trouble)
      return after
    })
  }, [])
  return { troubles, report }
}
