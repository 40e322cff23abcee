import type { Props } from "#schemas/analytics/EventFields.ts"
import { Choice } from "./Chances.ts"
import type { Random } from "./Random.ts"

/** A custom event as a site's own code would send it. */
export interface Goal {
  readonly name: string
  readonly props: Props | null
}

const below = (next: Random, limit: number): number => Math.floor(next() * limit)
const one = (next: Random, values: ReadonlyArray<string>): string => values[below(next, values.length)] ?? ""

const places = ["header", "footer", "sidebar", "article"]
const plans = ["free", "starter", "pro", "team"]
const queries = [
  "invoice",
  "return policy",
  "size chart",
  "api key",
  "export csv",
  "dark mode",
  "gift card",
  "cable"
]
const hosts = [
  "github.com",
  "www.youtube.com",
  "apps.apple.com",
  "play.google.com",
  "docs.example.net",
  "maps.google.com"
]

/** With weights in per cent of all custom events. */
const goals = new Choice<(next: Random) => Goal>([
  [
    (next) => ({
      name: "Outbound Link: Click",
      props: { url: `https://${one(next, hosts)}/${one(next, plans)}/${below(next, 400)}` }
    }),
    24
  ],
  [(next) => ({ name: "Search", props: { query: one(next, queries), results: below(next, 60) } }), 18],
  [
    (next) => ({
      name: "Add to Cart",
      props: {
        sku: `SKU-${10_000 + below(next, 4_000)}`,
        price: (499 + 500 * below(next, 40)) / 100,
        quantity: 1 + below(next, 3)
      }
    }),
    16
  ],
  [(next) => ({ name: "File Download", props: { file: `/files/manual-${below(next, 300)}.pdf` } }), 10],
  [
    (next) => ({
      name: "Video Play",
      props: { title: `Episode ${1 + below(next, 80)}`, autoplay: next() < 0.3 }
    }),
    9
  ],
  [(next) => ({ name: "Newsletter", props: { placement: one(next, places) } }), 8],
  [() => ({ name: "Contact", props: null }), 6],
  [
    (next) => ({
      name: "Signup",
      props: { plan: one(next, plans), method: next() < 0.6 ? "email" : "google" }
    }),
    5
  ],
  [
    (next) => ({
      name: "Purchase",
      props: {
        value: (999 + 100 * below(next, 250)) / 100,
        currency: next() < 0.8 ? "EUR" : "USD",
        items: 1 + below(next, 4),
        coupon: next() < 0.15
      }
    }),
    4
  ]
])

export const goalOf = (next: Random): Goal => goals.draw(next)(next)
