import { Choice } from "./Chances.ts"
import type { Random } from "./Random.ts"

/** User-Agents of browsers as they are met: about 700 different ones, desktop and mobile, current and older versions. */

const desktops = [
  "Windows NT 10.0; Win64; x64",
  "Macintosh; Intel Mac OS X 10_15_7",
  "X11; Linux x86_64",
  "X11; CrOS x86_64 14541.0.0"
]

const phones = [
  "Linux; Android 10; K",
  "Linux; Android 13; SM-S911B",
  "Linux; Android 13; Pixel 7",
  "Linux; Android 14; Pixel 8 Pro",
  "Linux; Android 14; SM-A546E",
  "Linux; Android 12; moto g(60)",
  "Linux; Android 11; M2101K6G"
]

const range = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index)

const chromeVersions = range(112, 140)

const webKit = "AppleWebKit/537.36 (KHTML, like Gecko)"

const chrome = chromeVersions.flatMap((version) =>
  desktops.map((system) => `Mozilla/5.0 (${system}) ${webKit} Chrome/${version}.0.0.0 Safari/537.36`)
)

const chromeMobile = chromeVersions.flatMap((version) =>
  phones.map((system) => `Mozilla/5.0 (${system}) ${webKit} Chrome/${version}.0.0.0 Mobile Safari/537.36`)
)

const edge = chromeVersions.map(
  (version) =>
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/${version}.0.0.0 Safari/537.36 Edg/${version}.0.0.0`
)

const opera = range(120, 140).map(
  (version) =>
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webKit} Chrome/${version}.0.0.0 Safari/537.36 OPR/${version - 16}.0.0.0`
)

const samsung = range(20, 28).map(
  (version) =>
    `Mozilla/5.0 (Linux; Android 10; K) ${webKit} SamsungBrowser/${version}.0 Chrome/${version + 97}.0.0.0 Mobile Safari/537.36`
)

const firefox = range(102, 142).flatMap((version) =>
  ["Windows NT 10.0; Win64; x64", "X11; Linux x86_64", "Android 14; Mobile"].map(
    (system) => `Mozilla/5.0 (${system}; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`
  )
)

const safariVersions = range(14, 18).flatMap((version) =>
  range(0, 6).map((minor) => [version, minor] as const)
)

const appleWebKit = "AppleWebKit/605.1.15 (KHTML, like Gecko)"

const safariDesktop = safariVersions.map(
  ([version, minor]) =>
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${appleWebKit} Version/${version}.${minor} Safari/605.1.15`
)

const safariPhone = safariVersions.map(
  ([version, minor]) =>
    `Mozilla/5.0 (iPhone; CPU iPhone OS ${version}_${minor} like Mac OS X) ${appleWebKit} ` +
    `Version/${version}.${minor} Mobile/15E148 Safari/604.1`
)

const safariTablet = safariVersions.map(
  ([version, minor]) =>
    `Mozilla/5.0 (iPad; CPU OS ${version}_${minor} like Mac OS X) ${appleWebKit} ` +
    `Version/${version}.${minor} Mobile/15E148 Safari/604.1`
)

const chromeOnPhone = safariVersions.map(
  ([version, minor]) =>
    `Mozilla/5.0 (iPhone; CPU iPhone OS ${version}_${minor} like Mac OS X) ${appleWebKit} ` +
    `CriOS/${version + 112}.0.0.0 Mobile/15E148 Safari/604.1`
)

/** Families and their share in per cent. */
const families: ReadonlyArray<readonly [ReadonlyArray<string>, number]> = [
  [chrome, 31],
  [chromeMobile, 24],
  [safariPhone, 18],
  [firefox, 8],
  [edge, 6.5],
  [safariDesktop, 5],
  [samsung, 3],
  [safariTablet, 2],
  [chromeOnPhone, 1.5],
  [opera, 1]
]

export const userAgents: ReadonlyArray<string> = families.flatMap(([members]) => members)

/** Within a family, listed from old to new, the newest is the most frequent: the k-th newest k^-1.2 as often. */
const choice = new Choice(
  families.flatMap(([members, share]) => {
    const weights = members.map((_, index) => (members.length - index) ** -1.2)
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    return members.map((member, index) => [member, ((weights[index] ?? 0) * share) / total] as const)
  })
)

/** A User-Agent as often as it is met. */
export const userAgent = (next: Random): string => choice.draw(next)
