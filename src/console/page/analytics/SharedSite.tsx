import type { SiteStats } from "#schemas/analytics/Stats.ts"
import type { ComponentChildren } from "preact"
import type { Refused } from "../api/Refused.ts"
import { useAnswer } from "../api/UseAnswer.ts"
import { Asking } from "../parts/Asking.tsx"
import { SiteView } from "./SiteView.tsx"

interface SharedSiteProps {
  readonly id: string
  /** shown where the site is not public, or does not exist: the page does not tell which */
  readonly otherwise: ComponentChildren
  /** its reader can sign in */
  readonly onAsk?: () => void
}

/** A public site, as anyone may see it. */
export const SharedSite = ({ id, onAsk, otherwise }: SharedSiteProps) => {
  const base = `/api/v1/public/sites/${encodeURIComponent(id)}`
  const { data, refused } = useAnswer<SiteStats>(`${base}/stats?period=today`, undefined, {
    isExpected: isPrivate
  })
  if (data !== undefined) return <SiteView site={data.site} base={base} isShared onAsk={onAsk} />
  if (refused !== undefined && isPrivate(refused)) return <>{otherwise}</>
  return <Asking what="the site" isRefused={refused !== undefined} />
}

/** Whether the site is not public, or does not exist: other refusals pass by themselves. */
const isPrivate = ({ retryMillis }: Refused): boolean => retryMillis === undefined
