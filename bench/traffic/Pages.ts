import { random } from "./Random.ts"

const words =
  "acorn amber anchor apple arrow autumn basic beacon better birch black bread bridge bright build candle cargo " +
  "cedar change chart city clean clear cloud coast coffee copper corner cotton create custom daily data deploy " +
  "design detail drive early easy engine every faster field final first forest fresh garden glass gold green guide " +
  "harbor heavy home honest iron island jacket journey kitchen lake large leather light linen little local long " +
  "maple market measure metal modern morning mountain native never night north number ocean older open orange " +
  "outdoor paper pattern people plain pocket privacy project public quick quiet railway ready river road round " +
  "salt sample season secure server seven shadow shared short silver simple small smart snow solid south spring " +
  "steel stone storage storm street summer swift table theory thread timber today tool traffic travel under " +
  "update upgrade urban valley vintage water weekly white why wild window winter wood world yellow young"

const vocabulary = words.split(" ")

/** The pages a site has once, and every visitor sees. */
const fixed = [
  "/",
  "/pricing",
  "/blog",
  "/docs",
  "/login",
  "/signup",
  "/products",
  "/cart",
  "/checkout",
  "/search",
  "/about",
  "/contact",
  "/changelog",
  "/jobs",
  "/privacy",
  "/de/preise"
]

/**
 * So many different paths, the most visited first: fixed pages, a blog by date, documentation by version, a shop by
 * category, pages of users, old pages that end in .html. About 36 characters on average.
 */
export const paths = (count: number): ReadonlyArray<string> => {
  const next = random(count)
  const below = (limit: number): number => Math.floor(next() * limit)
  const word = (): string => vocabulary[below(vocabulary.length)] ?? ""
  const slug = (length: number): string => Array.from({ length }, word).join("-")
  const twoDigits = (limit: number): string => String(1 + below(limit)).padStart(2, "0")
  const shapes: ReadonlyArray<() => string> = [
    () => `/blog/${2016 + below(11)}/${twoDigits(12)}/${slug(3 + below(4))}`,
    () => `/docs/v${1 + below(4)}/${word()}/${slug(1 + below(2))}`,
    () => `/products/${word()}/${slug(2 + below(2))}-${100_000 + below(900_000)}`,
    () => `/products/${word()}/${slug(2 + below(2))}-${100_000 + below(900_000)}`,
    () => `/blog/${2016 + below(11)}/${twoDigits(12)}/${slug(3 + below(4))}`,
    () => `/u/${word()}${below(100_000)}`,
    () => `/de/hilfe/${slug(2 + below(2))}`,
    () => `/blog/${2016 + below(11)}/${twoDigits(12)}/${slug(3 + below(4))}`,
    () => `/products/${word()}/${slug(2 + below(2))}-${100_000 + below(900_000)}`,
    () => `/archive/${slug(2)}-${below(10_000)}.html`
  ]
  const all = new Set(fixed.slice(0, count))
  while (all.size < count) {
    const made = shapes[all.size % shapes.length]?.() ?? ""
    all.add(all.has(made) ? `${made}-${all.size}` : made)
  }
  return [...all]
}
