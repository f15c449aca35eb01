import type { ServerConfig } from '../../config/config.ts'
import { ConnectProblem } from './problem.ts'

interface SignInProblem {
  readonly text: string
  /** The line of the file that solves it, if there is one. */
  readonly mend?: string
}

/**
 * Returns why users could not sign in to a server with `oauth`, as its metadata is now; `undefined` if they could, or if
 * it has no `oauth`. It asks the server and its authorization server, and registers nothing.
 */
export async function findSignInProblem({ oauth, ...server }: ServerConfig): Promise<SignInProblem | undefined> {
  if (!oauth) return undefined
  const [{ discover }, { fetchFor }] = await Promise.all([import('./discovery.ts'), import('./authority.ts')])
  const asked = { ...server, oauth }
  try {
    await discover(asked, fetchFor(asked))
    return undefined
  } catch (error) {
    if (!(error instanceof ConnectProblem)) throw error
    const { message: text, mend } = error
    return { text, ...(mend === undefined ? {} : { mend }) }
  }
}
