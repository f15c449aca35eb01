/** Returns the name under which one tool of a group is open. No name of a group has a line break. */
export function openToolOf(group: string, tool: string): string {
  return `${group}\n${tool}`
}

/** Returns the group of an open name: of the group itself, or of one of its tools. */
export function groupOfOpen(name: string): string {
  const end = name.indexOf('\n')
  return end === -1 ? name : name.slice(0, end)
}
