import type { Entry } from "../Types.ts"
import { formatWhen } from "../Words.ts"
import { formatCounted } from "../../figures/Format.ts"

/** A share link, as the API answers it. */
export interface ShareLink {
  readonly token: string
  readonly url: string
  readonly label: string | null
  readonly expiresAt: string | null
  readonly singleUse: boolean
  readonly passwordProtected: boolean
  readonly maxRequests: number | null
  readonly uses: number
  readonly pinned: boolean
  readonly createdAt: string
  readonly name?: string
}

export const path = "/api/share-links"

/** The query that selects the links of a file or directory. */
export const selecting = ({ kind, of }: Entry): string =>
  kind === "file" ? `?fileId=${of.id}` : `?directoryId=${of.id}`

export const isOver = ({ expiresAt, maxRequests, uses }: ShareLink): boolean =>
  (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) || (maxRequests !== null && uses >= maxRequests)

/** What one wants to know of a link, the most telling first. */
export const factsOf = (link: ShareLink): ReadonlyArray<string> => {
  const { expiresAt, label, maxRequests, passwordProtected, pinned, uses } = link
  const isExpired = expiresAt !== null && Date.parse(expiresAt) <= Date.now()
  return [
    ...(label === null || label === "" ? [] : [label]),
    maxRequests === null
      ? formatCounted(uses, "download")
      : `${uses} of ${formatCounted(maxRequests, "download")}`,
    expiresAt === null ? "no end" : `${isExpired ? "ended" : "until"} ${formatWhen(expiresAt)}`,
    ...(passwordProtected ? ["password"] : []),
    ...(pinned ? ["this version for ever"] : [])
  ]
}
