/** Returns the state of a call with the replica that holds it. */
export function withHolder(state: string, holder: string | undefined): string {
  return holder === undefined ? state : `${state}@${holder}`
}
