// A page that was opened from a disk may not fetch others: search lists what it finds
// without quoting it, and nobody needs the copy that is already there.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  document.documentElement.classList.add("offline");
}
