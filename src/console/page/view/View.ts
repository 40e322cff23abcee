/** The present view. All of it is in the address bar, so that a link opens the same view; no key ever is. */
export interface View {
  /** the path of a room's page */
  readonly room: string
  /** parameters of the page, by name; none of them is empty */
  readonly params: Readonly<Record<string, string>>
}

export const homeView: View = { room: "", params: {} }

export const formatView = ({ params, room }: View): string => {
  const text = new URLSearchParams({ ...(room === "" ? {} : { room }), ...params }).toString()
  return text === "" ? "/" : `/?${text}`
}

/** The view with other parameters; undefined removes one, as defaults are left out. */
export const withParams = (
  { params, room }: View,
  changes: Readonly<Record<string, string | undefined>>
): View => ({
  room,
  params: Object.fromEntries(
    Object.entries({ ...params, ...changes }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const]
    )
  )
})
