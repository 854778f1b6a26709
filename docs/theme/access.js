// What the theme makes as a page opens: a table or a formula that scrolls is reached by the keyboard,
// and the buttons of a block of code are no landmark.
function mend() {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, div.arithmatex")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
  for (const buttons of document.querySelectorAll(".md-code__nav")) buttons.setAttribute("role", "none");
}
document$.subscribe(() => {
  mend();
  new MutationObserver(mend).observe(document.querySelector("main"), { childList: true, subtree: true });
});
