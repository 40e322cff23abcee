/** User-Agents of browsers as they are met: about 600 different ones, desktop and mobile, current and older versions. */

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

const chrome = range(112, 140).flatMap((version) => [
  ...desktops.map(
    (system) =>
      `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Safari/537.36`
  ),
  ...phones.map(
    (system) =>
      `Mozilla/5.0 (${system}) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${version}.0.0.0 Mobile Safari/537.36`
  )
])

const edge = range(112, 140).map(
  (version) =>
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) ` +
    `Chrome/${version}.0.0.0 Safari/537.36 Edg/${version}.0.0.0`
)

const firefox = range(102, 142).flatMap((version) =>
  ["Windows NT 10.0; Win64; x64", "X11; Linux x86_64", "Android 14; Mobile"].map(
    (system) => `Mozilla/5.0 (${system}; rv:${version}.0) Gecko/20100101 Firefox/${version}.0`
  )
)

const safari = range(14, 18).flatMap((version) =>
  range(0, 6).flatMap((minor) => [
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) ` +
      `Version/${version}.${minor} Safari/605.1.15`,
    `Mozilla/5.0 (iPhone; CPU iPhone OS ${version}_${minor} like Mac OS X) AppleWebKit/605.1.15 ` +
      `(KHTML, like Gecko) Version/${version}.${minor} Mobile/15E148 Safari/604.1`,
    `Mozilla/5.0 (iPad; CPU OS ${version}_${minor} like Mac OS X) AppleWebKit/605.1.15 ` +
      `(KHTML, like Gecko) Version/${version}.${minor} Mobile/15E148 Safari/604.1`
  ])
)

export const userAgents: ReadonlyArray<string> = [...chrome, ...edge, ...firefox, ...safari]
