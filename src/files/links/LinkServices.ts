import { Layer } from "effect"
import { LinkPasswords } from "./LinkPasswords.ts"
import { LinkUses } from "./LinkUses.ts"
import { LinkWatch } from "./LinkWatch.ts"
import { ShareLinks } from "./ShareLinks.ts"

/** Share links and what counts their uses; over directories and files. */
export const linkServices = Layer.mergeAll(ShareLinks.layer, LinkUses.layer, LinkWatch.layer).pipe(
  Layer.provideMerge(LinkPasswords.layer)
)
