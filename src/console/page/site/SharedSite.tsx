import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { makeAsk } from "../api/Ask.ts"
import { Refused } from "../api/Refused.ts"
import type { SiteStats } from "../api/Contract.ts"
import { useSession } from "../api/Session.ts"
import { whenVisible } from "../api/WhenVisible.ts"
import { Asking } from "../parts/Asking.tsx"
import { SiteView } from "./SiteView.tsx"

interface SharedSiteProps {
  readonly id: string
  /** shown where the site is not public, or does not exist: the page does not tell which */
  readonly otherwise: ComponentChildren
  /** its reader has a key to enter */
  readonly onAsk?: () => void
}

const askAnonymously = makeAsk(undefined)

/** A public site, as anyone may see it. */
export const SharedSite = ({ id, onAsk, otherwise }: SharedSiteProps) => {
  const base = `/api/v1/public/sites/${encodeURIComponent(id)}`
  const { found, isRefused } = usePublicSite(base)
  if (found === "asking") return <Asking what="the site" isRefused={isRefused} />
  if (found === "private") return <>{otherwise}</>
  return <SiteView key={id} site={found} base={base} isShared onAsk={onAsk} />
}

type Found = SiteStats["site"] | "asking" | "private"

const usePublicSite = (base: string): { readonly found: Found; readonly isRefused: boolean } => {
  const { onTrouble } = useSession()
  const [found, setFound] = useState<Found>("asking")
  const [isRefused, setRefused] = useState(false)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    setFound("asking")
    setRefused(false)
    const look = async (): Promise<void> => {
      try {
        const { site } = await askAnonymously<SiteStats>(`${base}/stats?period=today`, { signal })
        setFound(site)
        onTrouble(base, undefined)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof Refused)) throw error
        if (error.retryMillis === undefined) return setFound("private")
        setRefused(true)
        onTrouble(base, error)
        whenVisible(error.retryMillis, look, signal)
      }
    }
    void look()
    return () => {
      controller.abort()
      onTrouble(base, undefined)
    }
  }, [base, onTrouble])
  return { found, isRefused }
}
