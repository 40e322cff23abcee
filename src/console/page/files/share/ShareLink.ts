import type { SharedLink, ShareLink } from "#schemas/files/ShareLink.ts"
export type { SharedLink, ShareLink }
import type { Entry } from "../Types.ts"
import { formatWhen } from "../Words.ts"
import { formatCounted } from "../../figures/Format.ts"

export const path = "/api/share-links"

/** The part of a query that selects the links of a file or directory. */
export const selecting = ({ kind, of }: Entry): string =>
  kind === "file" ? `&fileId=${of.id}` : `&directoryId=${of.id}`

export const isOver = ({ expiresAt, maxRequests, uses }: ShareLink): boolean =>
  (expiresAt !== null && Date.parse(expiresAt) <= Date.now()) || (maxRequests !== null && uses >= maxRequests)

/** Facts about a link, the most telling first. */
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
