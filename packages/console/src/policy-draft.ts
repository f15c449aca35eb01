/** A changed policy text that is not in force. */
export interface PolicyDraft {
  readonly text: string
  /** The text in force when the draft was begun. */
  readonly from: string
}

const KEY = 'toolgate-policy-draft'

/** Returns a person's draft in this browser tab. */
export function readDraft(user: string): PolicyDraft | undefined {
  const kept = sessionStorage.getItem(KEY)
  if (kept === null) return undefined
  const [owner, text, from] = JSON.parse(kept) as [string, string, string]
  return owner === user ? { text, from } : undefined
}

/**
 * Stores the draft until the tab is closed or the person logs out. A text equal to the policy in force is not stored.
 */
export function keepDraft(user: string, { text, from }: PolicyDraft): void {
  try {
    if (text === from) dropDraft()
    else sessionStorage.setItem(KEY, JSON.stringify([user, text, from]))
  } catch {
    // The browser's storage is full. The text stays in the editor.
  }
}

export function dropDraft(): void {
  sessionStorage.removeItem(KEY)
}
