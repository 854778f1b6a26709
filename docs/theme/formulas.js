for (const formula of document.querySelectorAll(".arithmatex")) renderMathInElement(formula);
