/** A changed text of the policy that nobody has put into force. */
export interface PolicyDraft {
  readonly text: string
  /** The text in force when the draft began. */
  readonly from: string
}

const KEY = 'toolgate-policy-draft'

/** Returns the draft that a person has left in this tab of the browser. */
export function readDraft(user: string): PolicyDraft | undefined {
  const kept = sessionStorage.getItem(KEY)
  if (kept === null) return undefined
  const [owner, text, from] = JSON.parse(kept) as [string, string, string]
  return owner === user ? { text, from } : undefined
}

/** Keeps the draft until the tab is closed or the person logs out. One that says what is in force is none. */
export function keepDraft(user: string, { text, from }: PolicyDraft): void {
  try {
    if (text === from) dropDraft()
    else sessionStorage.setItem(KEY, JSON.stringify([user, text, from]))
  } catch {
    // The browser keeps no more. The text stays in the editor.
  }
}

export function dropDraft(): void {
  sessionStorage.removeItem(KEY)
}
