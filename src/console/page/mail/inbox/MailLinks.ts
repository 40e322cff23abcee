import type { Email } from "postal-mime"

interface MailLink {
  readonly text: string
  /** as it is written */
  readonly href: string
  /** a page; all else is shown and leads nowhere */
  readonly isWeb: boolean
}

/** The most that are listed. */
const listed = 500

/** The policy of this page reports styles even there. */
const withoutStyles = (html: string): string => html.replaceAll(/(?<=[\s"'])style(?=\s*=)/gi, "x-style")

/** The links of a mail's HTML. A document that is parsed so loads and runs nothing. */
export const linksOf = ({ html }: Email): ReadonlyArray<MailLink> => {
  if (html === undefined) return []
  const document = new DOMParser().parseFromString(withoutStyles(html), "text/html")
  return [...document.querySelectorAll("a[href], area[href]")].slice(0, listed).map((link) => {
    const href = link.getAttribute("href") ?? ""
    return { text: (link.textContent ?? "").trim().slice(0, 200), href, isWeb: /^https?:\/\//i.test(href) }
  })
}
