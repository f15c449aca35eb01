/** Adds the replica that holds a call to the call's state. */
export function withHolder(state: string, holder: string | undefined): string {
  return holder === undefined ? state : `${state}@${holder}`
}
