/** English words that say nothing about a tool. They count in names, and in a query that has no others. */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a an and any are as at be been by can could do does for from has have how i if in into is it its me my of on or our
  please should so some than that the their them then there these this those to us use used using want was we what when
  which will with would you your`.split(/\s+/),
)
