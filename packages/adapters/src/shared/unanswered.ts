/** The text for the model about a call that waits for a person, if the user writes a message instead. */
export const USER_WROTE =
  'It did not run, because the user wrote instead of approving it. Call it again if it is still wanted.'
