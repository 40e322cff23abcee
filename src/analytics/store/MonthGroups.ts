/**
 * Months that one statement touches: `events` and `visits` have a partition each, and a statement holds buffers for each
 * that it writes, and for each that it merges while it reads. 680 of them took 936 MiB.
 */
const monthsPerStatement = 12

const monthOf = (day: number): number => {
  const date = new Date(day * 86_400_000)
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

/**
 * Splits what has a day (days since 1970-01-01) into groups of at most twelve months each, or so many as are given, in the
 * order of time. The same items make the same groups. Within a group the order stays.
 */
export const monthGroups = <A extends { readonly day: number }>(
  items: ReadonlyArray<A>,
  monthsPerGroup = monthsPerStatement
): ReadonlyArray<ReadonlyArray<A>> => {
  const monthOfDay = new Map<number, number>()
  for (const { day } of items) if (!monthOfDay.has(day)) monthOfDay.set(day, monthOf(day))
  const months = Array.from(new Set(monthOfDay.values())).toSorted((left, right) => left - right)
  if (months.length <= monthsPerGroup) return items.length === 0 ? [] : [items]
  const placeOf = new Map(months.map((month, index) => [month, Math.floor(index / monthsPerGroup)]))
  const groups: Array<Array<A>> = []
  for (const item of items) {
    const place = placeOf.get(monthOfDay.get(item.day) ?? 0) ?? 0
    const group = (groups[place] ??= [])
    group.push(item)
  }
  return groups
}
