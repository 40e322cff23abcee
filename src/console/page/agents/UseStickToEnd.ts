import { useEffect, useLayoutEffect, useRef } from "preact/hooks"

/** pixels from the end that still count as there */
const near = 60

/** A reader at the end of the page stays there when something is added; elsewhere the page does not move. */
export const useStickToEnd = (content: unknown): void => {
  const isAtEnd = useRef(false)
  useEffect(() => {
    const onScroll = (): void => {
      const { clientHeight, scrollHeight } = document.documentElement
      isAtEnd.current = scrollY > 0 && scrollY + clientHeight >= scrollHeight - near
    }
    addEventListener("scroll", onScroll, { passive: true })
    return () => removeEventListener("scroll", onScroll)
  }, [])
  useLayoutEffect(() => {
    if (isAtEnd.current) scrollTo(0, document.documentElement.scrollHeight)
  }, [content])
}
