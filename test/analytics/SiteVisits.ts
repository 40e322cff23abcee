import { chrome } from "./Senders.ts"

const iphone =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1"

const campaign = "utm_source=list&utm_medium=email&utm_campaign=spring&utm_term=boots&utm_content=top"

/** From Germany by way of Google on a computer: two pages, one event. */
const anna = {
  visitor: "anna",
  userAgent: chrome,
  country: "DE",
  referrer: "https://www.google.com/search?q=x"
}

/** From France by way of a newsletter on a telephone: one page, two events. */
const bert = { visitor: "bert", userAgent: iphone, country: "FR" }

/** Of whom nothing is known but the page, and who fires one event five times. */
const cleo = { visitor: "cleo" }

/** Three visits of the last minute, as `collect` takes them. */
export const threeVisits: ReadonlyArray<object> = [
  { ...anna, url: "/" },
  { ...anna, url: "/pricing?plan=x#top" },
  { ...anna, url: "/pricing", name: "signup", props: { plan: "pro" } },
  { ...bert, url: `/?${campaign}` },
  { ...bert, url: "/", name: "signup", props: { plan: "free" } },
  { ...bert, url: "/", name: "signup", props: { plan: "pro" } },
  { ...cleo, url: "https://blog.example.com/post" },
  ...Array.from({ length: 5 }, () => ({ ...cleo, url: "https://blog.example.com/post", name: "scroll" }))
]
