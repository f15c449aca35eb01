import type { View } from '@toolgate/core'
import { kindOfId } from '@toolgate/core/tools'
import type { Heart } from '../../heart/heart.ts'

/** Returns the name of a tool or a prompt on the wire, if it can have one; with a view, also of its caller's own. */
export function wireNameOf({ catalog }: Pick<Heart, 'catalog'>, id: string, view?: View): string | undefined {
  const { lists } = catalog
  const namesOf = (of?: View) => (kindOfId(id) === 'prompt' ? lists.promptNames(of) : lists.names(of))
  return namesOf().toName(id) ?? (view && namesOf(view).toName(id))
}
